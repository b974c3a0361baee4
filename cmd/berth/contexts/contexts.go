package contexts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

// name matches the name of a context.
var name = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

// Context is a daemon.
type Context struct {
	URL   string
	Token v1.Secret // empty: requests carry no token
	CA    string    // PEM certificates that are trusted beside those of the system
}

// Set is the content of the file.
type Set struct {
	Current  string // a key of Contexts, or empty: none
	Contexts map[string]Context
}

// stored is the form of a Set in the file.
type stored struct {
	Current  string                   `json:"current"`
	Contexts map[string]storedContext `json:"contexts"`
}

type storedContext struct {
	URL   string `json:"url"`
	Token string `json:"token,omitempty"`
	CA    string `json:"ca,omitempty"`
}

// CheckName returns an error for a text that cannot name a context.
func CheckName(text string) error {
	if !name.MatchString(text) {
		return fmt.Errorf("%q cannot name a context: a name has 1 to 63 letters, digits, _, . or -, and begins with a letter or digit", text)
	}
	return nil
}

// Path returns the path of the file of a user with these environment variables; empty
// if they have no home.
func Path(env func(name string) string) string {
	switch dir, home := env("XDG_CONFIG_HOME"), env("HOME"); {
	case filepath.IsAbs(dir): // others are to be ignored, as the specification requires
		return filepath.Join(dir, "berth", "contexts.json")
	case home != "":
		return filepath.Join(home, ".config", "berth", "contexts.json")
	}
	return ""
}

// Load reads a file. One that does not exist has no contexts.
func Load(path string) (Set, error) {
	set := Set{Contexts: map[string]Context{}}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || path == "" {
		return set, nil
	}
	if err != nil {
		return set, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return set, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return set, fmt.Errorf("%s contains tokens, and other users can read it (mode %04o): run chmod 600 on it", path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return set, err
	}
	if err := set.decode(text); err != nil {
		return set, fmt.Errorf("%s: %w", path, err)
	}
	return set, nil
}

// decode reads the content of a file. Its errors do not repeat the content.
func (s *Set) decode(text []byte) error {
	if len(text) > maxFile {
		return fmt.Errorf("is larger than %s", v1.Size(maxFile))
	}
	var all stored
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return fmt.Errorf("is not a file of contexts (at byte %d): correct or remove it", decoder.InputOffset())
	}
	for name, c := range all.Contexts {
		if err := CheckName(name); err != nil {
			return err
		}
		s.Contexts[name] = Context{URL: c.URL, Token: v1.Secret(c.Token), CA: c.CA}
	}
	s.Current = all.Current
	return nil
}

// Update changes the file at path, and creates it with its directory if there is
// none.
func Update(path string, change func(*Set) error) error {
	if path == "" {
		return errors.New("there is no place for contexts: set HOME or XDG_CONFIG_HOME")
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer lock.Close() // releases the lock
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	set, err := Load(path)
	if err != nil {
		return err
	}
	if err := change(&set); err != nil {
		return err
	}
	all := stored{Current: set.Current, Contexts: map[string]storedContext{}}
	for name, c := range set.Contexts {
		all.Contexts[name] = storedContext{URL: c.URL, Token: c.Token.Reveal(), CA: c.CA}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if len(text) >= maxFile {
		return fmt.Errorf("%s would be larger than %s: remove contexts", path, v1.Size(maxFile))
	}
	return config.Replace(path, string(text)+"\n")
}
