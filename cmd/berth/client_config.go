package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

// newConfigShow tells the configuration that serve would run with.
func newConfigShow(l *loader) *cobra.Command {
	return l.keyFlags(&cobra.Command{
		Use:   "show [key]...",
		Short: "Print the configuration in force after file, environment and flags, without its secrets",
		Long: "Print the configuration that `berth serve` would run with: the file, the environment over it, the flags\n" +
			"over that. Secrets show as ***. With keys, only their values, one a line; with -o json an object of them.",
		Example: "  berth config show\n  berth config show storage.data_path server.port",
		RunE: func(cmd *cobra.Command, keys []string) error {
			got, err := l.load()
			if err != nil {
				return l.named(err)
			}
			if len(keys) > 0 {
				return showKeys(cmd, &got.config, keys)
			}
			raw, err := json.Marshal(got.config)
			if err != nil {
				return err
			}
			return show(cmd, raw, func(t *table) {
				for key := range leaves(&got.config) {
					t.row(key.key, key.text())
				}
			})
		},
	})
}

func showKeys(cmd *cobra.Command, c *v1.Config, keys []string) error {
	all, asked, text := map[string]leaf{}, map[string]any{}, ""
	for key := range leaves(c) {
		all[key.key] = key
	}
	for _, key := range keys {
		l, known := all[key]
		if !known {
			return fmt.Errorf("%s is not a key of the configuration: `berth config show` lists them", key)
		}
		asked[key] = l.value.Interface() // secrets hide themselves
		text += l.text() + "\n"
	}
	return answer(cmd, asked, strings.TrimSuffix(text, "\n"))
}

// text is the key's value as the environment would set it; a secret's is hidden.
func (l leaf) text() string {
	switch {
	case l.value.Kind() == reflect.Slice:
		return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(l.value.Interface())), ","), "[]")
	case l.value.Kind() == reflect.Map && l.value.Len() == 0:
		return ""
	case l.secret() && l.value.Kind() == reflect.Map:
		return "***"
	}
	return fmt.Sprint(l.value.Interface())
}

// newConfigCurl is for people and scripts that speak to the interface with curl.
func newConfigCurl(l *loader) *cobra.Command {
	return &cobra.Command{
		Use:   "curl",
		Short: "Print options for curl -K: the token and the vendor header",
		Long: "Print options for curl -K: the token and the vendor header, and that an error's status fails. So the token\n" +
			"stands neither in a command line nor in a shell's history. With server.tls the daemon's own certificate is\n" +
			"accepted, and no other, whatever name it is for and whoever has signed it.",
		Example: "  curl -K <(berth config curl) http://127.0.0.1:8070/containers",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := cli{loader: l}
			api, err := c.connect()
			if err != nil {
				return err
			}
			out := "silent\nshow-error\nfail-with-body\n"
			if api.tls != nil {
				out += pin(l)
			}
			for name, values := range api.headers() {
				out += fmt.Sprintf("header = %q\n", name+": "+values[0])
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), out)
			return err
		},
	}
}

// pin makes curl take the certificate of the configuration and no other. The
// name in it is not that of the loopback, and often nobody has signed it.
func pin(l *loader) string {
	got, err := l.load()
	if err != nil || got.certificate == nil || got.certificate.Leaf == nil {
		return ""
	}
	sum := sha256.Sum256(got.certificate.Leaf.RawSubjectPublicKeyInfo)
	return "insecure\npinnedpubkey = \"sha256//" + base64.StdEncoding.EncodeToString(sum[:]) + "\"\n"
}
