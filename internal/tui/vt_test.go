package tui_test

// Kept in go.mod until the packages that use them are there.
import (
	_ "github.com/charmbracelet/x/vt"
)
