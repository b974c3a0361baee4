package backup

// Matches reports whether patterns leave out the entry at path.
func Matches(patterns []string, path string, isFolder bool) bool {
	return match(parseRules(patterns), path, isFolder)
}
