package snapshot

// The text of the manifest around the lines of the members, which are JSON objects.
const (
	manifestHead    = "{\"version\":1,\"members\":[\n"
	manifestBetween = ",\n"
	manifestTail    = "\n],\"files\":%d,\"bytes\":%d}\n"
)
