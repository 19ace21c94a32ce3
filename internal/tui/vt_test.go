package tui_test

import _ "github.com/charmbracelet/x/vt"
