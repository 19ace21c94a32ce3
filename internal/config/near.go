package config

import "goclaw/internal/near"

// Nearest returns the one of names that s is most likely a misspelling of, or "".
func Nearest(s string, names []string) string { return near.Nearest(s, names) }
