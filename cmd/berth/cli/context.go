package cli

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

const contextHelp = `The daemon of a command is that of the first of these:
  --context, --url or --config
  $BERTH_URL
  $BERTH_CONTEXT
  $BERTH_CONFIG
  the current context
  the configuration at its default place
A command with a context uses its token, or without --context that of $BERTH_TOKEN if it is set.
Contexts are stored in $XDG_CONFIG_HOME/berth/contexts.json (~/.config), readable by their owner only.`

func newContextCommand(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:   "context",
		Short: "List, choose, set and remove the daemons of other hosts",
		Long:  "List, choose, set and remove contexts: names of daemons, with their URLs and tokens.\n\n" + contextHelp,
		Example: "  berth context set paris --url https://paris.example:8070 --token-file paris.token\n  berth context use paris\n" +
			"  berth ps --context rome",
	}, newContextList(c), newContextUse(c), newContextSet(c), newContextRemove(c))
}

// contextPath returns the path of the contexts.
func (c *connector) contextPath() string { return contextsPath(c.loader.Env) }

// contextNames returns the names of the contexts, sorted.
func (c *connector) contextNames() []string {
	set, err := loadContexts(c.contextPath())
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(set.Contexts))
}

// listedContext is a context without its token.
type listedContext struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	URL     string `json:"url"`
	Token   bool   `json:"token"` // whether it has one
	CA      bool   `json:"ca"`    // whether it has one
}

func newContextList(c *connector) *cobra.Command {
	return localCommand(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the contexts, without their tokens",
		Example: "  berth context list",
		Args:    cobra.NoArgs,
	}, func(cmd *cobra.Command, _ []string) error {
		set, err := loadContexts(c.contextPath())
		if err != nil {
			return err
		}
		list := []listedContext{}
		for _, name := range slices.Sorted(maps.Keys(set.Contexts)) {
			x := set.Contexts[name]
			list = append(list, listedContext{name, name == set.Current, x.URL, x.Token.Secret != "", x.CA != ""})
		}
		raw, err := json.Marshal(map[string]any{"contexts": list})
		if err != nil {
			return err
		}
		return show(cmd, raw, names(list, func(l listedContext) string { return l.Name }), func(t *table) {
			t.head("CURRENT", "CONTEXT", "URL", "TOKEN", "CA")
			for _, l := range list {
				t.row(mark(l.Current, "*"), l.Name, l.URL, mark(l.Token, "yes"), mark(l.CA, "yes"))
			}
		})
	})
}

// mark returns text if it applies, else nothing.
func mark(applies bool, text string) string {
	if applies {
		return text
	}
	return ""
}

func newContextUse(c *connector) *cobra.Command {
	var none bool
	cmd := withoutNames(localCommand(&cobra.Command{
		Use:     "use <name>",
		Short:   "Make a context the current one",
		Long:    "Make a context the current one. With --none, commands use the daemon of this host again.\n\n" + contextHelp,
		Example: "  berth context use paris\n  berth context use --none",
		Args:    cobra.MaximumNArgs(1),
	}, func(cmd *cobra.Command, args []string) error {
		if none == (len(args) == 1) {
			return withCode(exitUsage, errors.New("name a context, or give --none; usage: "+cmd.UseLine()))
		}
		name := ""
		if !none {
			name = args[0]
		}
		err := updateContexts(c.contextPath(), func(set *contextSet) error {
			if _, known := set.Contexts[name]; !known && !none {
				return unknownContext(*set, name)
			}
			set.Current = name
			return nil
		})
		if err != nil {
			return err
		}
		if none {
			return answer(cmd, map[string]string{"current": ""}, "no context is current: commands use the daemon of this host")
		}
		return answer(cmd, map[string]string{"current": name}, name+" is the current context")
	}))
	cmd.Flags().BoolVar(&none, "none", false, "let no context be the current one")
	cmd.ValidArgsFunction = c.completeContexts(1)
	return cmd
}

// unknownContext returns the error for a name that is not in set.
func unknownContext(set contextSet, name string) error {
	known := "there are none; `berth context set` creates one"
	if len(set.Contexts) > 0 {
		known = "the contexts are " + strings.Join(slices.Sorted(maps.Keys(set.Contexts)), ", ")
	}
	return withCode(exitNotFound, fmt.Errorf("there is no context %q: %s", name, known))
}

func newContextSet(c *connector) *cobra.Command {
	var url, tokenFile, caFile string
	cmd := withoutNames(localCommand(&cobra.Command{
		Use:   "set <name>",
		Short: "Create a context, or change its URL, token or certificate",
		Long: "Create a context, or change its URL, token or certificate; what is not given stays as it is. The token\n" +
			"comes from --token-file, or for a new context from $BERTH_TOKEN, but never from an argument, because\n" +
			"every user of this host can read arguments. The first context becomes the current one.\n\n" + contextHelp,
		Example: "  ssh paris berth token create --ttl 30d | berth context set paris --url https://paris.example:8070 --token-file -\n" +
			"  berth context set paris --ca-file paris.pem",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) error {
		if err := checkContextName(args[0]); err != nil {
			return withCode(exitUsage, err)
		}
		change, err := contextChange(cmd.InOrStdin(), url, tokenFile, caFile)
		if err != nil {
			return err
		}
		err = updateContexts(c.contextPath(), func(set *contextSet) error {
			return set.set(args[0], change, v1.Secret(c.loader.Env(envToken)))
		})
		if err != nil {
			return err
		}
		if base, err := neturl.Parse(url); err == nil && base.Scheme == "http" && !v1.IsLoopback(base.Hostname()) {
			fmt.Fprintln(cmd.ErrOrStderr(), "berth: the URL is not https: tokens travel in clear")
		}
		return answer(cmd, map[string]string{"name": args[0]}, args[0]+": set")
	}))
	cmd.Flags().Func("url", "`URL` of the daemon", func(text string) error {
		url = text
		return checkURL(text)
	})
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "`file` with the token; - is standard input (default for a new context $"+envToken+")")
	cmd.Flags().StringVar(&caFile, "ca-file", "", "PEM `file` with certificates to trust, such as the daemon's own")
	cmd.ValidArgsFunction = c.completeContexts(1)
	return cmd
}

// contextChange checks and reads the new values of a context; empty: unchanged.
func contextChange(stdin io.Reader, url, tokenFile, caFile string) (change savedContext, err error) {
	change.URL = strings.TrimRight(url, "/")
	if tokenFile != "" {
		text, err := readInput(tokenFile, stdin)
		if err != nil {
			return change, err
		}
		change.Token.Secret = v1.Secret(bytes.TrimSpace(text))
		if change.Token.Secret == "" || strings.ContainsAny(change.Token.Reveal(), " \r\n\t") {
			return change, fmt.Errorf("%s: must contain one token and nothing else", tokenFile)
		}
	}
	if caFile != "" {
		text, err := readInput(caFile, stdin)
		if err != nil {
			return change, err
		}
		if !x509.NewCertPool().AppendCertsFromPEM(text) {
			return change, fmt.Errorf("%s: contains no certificate in PEM", caFile)
		}
		change.CA = string(text)
	}
	return change, nil
}

// set changes a context, or creates one, whose default token is token.
func (s *contextSet) set(name string, change savedContext, token v1.Secret) error {
	x, exists := s.Contexts[name]
	if !exists {
		x.Token.Secret = token
	}
	x.URL, x.CA = cmp.Or(change.URL, x.URL), cmp.Or(change.CA, x.CA)
	x.Token.Secret = cmp.Or(change.Token.Secret, x.Token.Secret)
	if x.URL == "" {
		return withCode(exitUsage, fmt.Errorf("%s is a new context: name its daemon with --url", name))
	}
	if len(s.Contexts) == 0 {
		s.Current = name
	}
	s.Contexts[name] = x
	return nil
}

// readInput reads a file; - is standard input.
func readInput(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}

func newContextRemove(c *connector) *cobra.Command {
	cmd := withoutNames(localCommand(&cobra.Command{
		Use:     "rm <name>...",
		Aliases: []string{"remove", "delete"},
		Short:   "Remove contexts",
		Long:    "Remove contexts with their tokens from the file. The tokens stay valid: `berth token revoke` revokes them.",
		Example: "  berth context rm paris",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, args []string) error {
		err := updateContexts(c.contextPath(), func(set *contextSet) error {
			for _, name := range args {
				if _, known := set.Contexts[name]; !known {
					return unknownContext(*set, name)
				}
				delete(set.Contexts, name)
				if set.Current == name {
					set.Current = ""
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return answer(cmd, map[string][]string{"removed": args}, strings.Join(args, ", ")+": removed")
	}))
	cmd.ValidArgsFunction = c.completeContexts(0)
	return cmd
}

// localCommand completes a command that calls no daemon.
func localCommand(cmd *cobra.Command, do func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd.Args = withUsage(cmd.Args)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = do
	return cmd
}

// contextName matches the name of a context.
var contextName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

// savedContext is a daemon that a user named.
type savedContext struct {
	URL   string   `json:"url"`
	Token v1.Clear `json:"token,omitzero"` // empty: requests carry no token
	CA    string   `json:"ca,omitempty"`   // PEM certificates that are trusted beside those of the system
}

// contextSet is the content of the file of contexts.
type contextSet struct {
	Current  string                  `json:"current"` // a key of Contexts, or empty: none
	Contexts map[string]savedContext `json:"contexts"`
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
	var set contextSet
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
	if json.Unmarshal(text, &set) != nil { // the error may repeat a token
		return set, fmt.Errorf("%s: is not a file of contexts: correct or remove it", path)
	}
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
	if set.Contexts == nil {
		set.Contexts = map[string]savedContext{}
	}
	if err := change(&set); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		return err
	}
	return config.Replace(path, string(text)+"\n")
}
