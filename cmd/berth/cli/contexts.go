package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

// contextName matches the name of a context.
var contextName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

// savedContext is a daemon that a user named.
type savedContext struct {
	URL   string
	Token v1.Secret // empty: requests carry no token
	CA    string    // PEM certificates that are trusted beside those of the system
}

// contextSet is the content of the file of contexts.
type contextSet struct {
	Current  string // a key of Contexts, or empty: none
	Contexts map[string]savedContext
}

// storedContexts is the form of a contextSet in the file.
type storedContexts struct {
	Current  string                   `json:"current"`
	Contexts map[string]storedContext `json:"contexts"`
}

type storedContext struct {
	URL   string `json:"url"`
	Token string `json:"token,omitempty"`
	CA    string `json:"ca,omitempty"`
}

// checkContextName returns an error for a text that cannot name a context.
func checkContextName(text string) error {
	if !contextName.MatchString(text) {
		return fmt.Errorf("%q cannot name a context: a name has 1 to 63 letters, digits, _, . or -, and begins with a letter or digit", text)
	}
	return nil
}

// contextsPath returns the path of the contexts of a user with these environment variables; empty
// if they have no home.
func contextsPath(env func(name string) string) string {
	switch dir, home := env("XDG_CONFIG_HOME"), env("HOME"); {
	case filepath.IsAbs(dir): // others are to be ignored, as the specification requires
		return filepath.Join(dir, "berth", "contexts.json")
	case home != "":
		return filepath.Join(home, ".config", "berth", "contexts.json")
	}
	return ""
}

// loadContexts reads a file of contexts. One that does not exist has no contexts.
func loadContexts(path string) (contextSet, error) {
	set := contextSet{Contexts: map[string]savedContext{}}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || path == "" {
		return set, nil
	}
	if err != nil {
		return set, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return set, fmt.Errorf("%s contains tokens, and other users can read it (mode %04o): run chmod 600 on it", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return set, err
	}
	var all storedContexts
	if json.Unmarshal(text, &all) != nil { // the error may repeat a token
		return set, fmt.Errorf("%s: is not a file of contexts: correct or remove it", path)
	}
	for name, c := range all.Contexts {
		set.Contexts[name] = savedContext{URL: c.URL, Token: v1.Secret(c.Token), CA: c.CA}
	}
	set.Current = all.Current
	return set, nil
}

// updateContexts changes the file of contexts at path, and creates it with its directory if
// there is none.
func updateContexts(path string, change func(*contextSet) error) error {
	if path == "" {
		return errors.New("there is no place for contexts: set HOME or XDG_CONFIG_HOME")
	}
	set, err := loadContexts(path)
	if err != nil {
		return err
	}
	if err := change(&set); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	all := storedContexts{Current: set.Current, Contexts: map[string]storedContext{}}
	for name, c := range set.Contexts {
		all.Contexts[name] = storedContext{URL: c.URL, Token: c.Token.Reveal(), CA: c.CA}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return config.Replace(path, string(text)+"\n")
}
