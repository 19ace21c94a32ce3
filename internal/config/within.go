package config

import "path/filepath"

// Within reports whether path is dir or inside it.
func Within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
