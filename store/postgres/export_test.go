package postgres

// TestDSN is the DSN of a database of its own for each name, for examples.
var TestDSN = dsnOf
