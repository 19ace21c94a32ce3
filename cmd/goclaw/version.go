package main

import "runtime/debug"

// version returns the module's version as the build recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			return "devel " + s.Value[:min(12, len(s.Value))]
		}
	}
	if v == "" || v == "(devel)" {
		return "devel"
	}
	return v
}
