package v1

// Secret is a text that no log or message may show: it prints as ***. Its JSON
// and YAML forms are masked too; use Reveal where the value itself is meant.
type Secret string

const masked = "***"

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal is the value.
func (s Secret) Reveal() string { return string(s) }
