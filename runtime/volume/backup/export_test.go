package backup

import "io/fs"

// Matches reports whether patterns leave out the entry at path.
func Matches(patterns []string, path string, isFolder bool) bool {
	mode := fs.FileMode(0)
	if isFolder {
		mode = fs.ModeDir
	}
	return ParseRules(patterns).Match(path, mode)
}
