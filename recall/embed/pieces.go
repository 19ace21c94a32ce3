package embed

// Pieces returns how many pieces of the vocabulary a text is cut into, at most
// as many as the model was made for. The fewer a word has, the better the model knows it.
func (m *Model) Pieces(text string) int { return len(m.words.tokens(text, maxTokens)) }
