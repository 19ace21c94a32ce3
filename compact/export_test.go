package compact

// What tests look into.
var (
	Parse        = parse
	Extract      = extract
	Identifiers  = identifiers
	ErrNoSummary = errNoSummary
)

// Extracted opens a summary that was made without a model.
const Extracted = extractMark

// Pinned is a record that a summary has word for word.
type Pinned = pin
