package cli

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"

	"berth/cmd/berth/config"
)

func newConfigCurl(l *config.Loader) *cobra.Command {
	return withoutNames(&cobra.Command{
		Use:   "curl",
		Short: "Print options for curl -K: the token and the vendor header",
		Long: "Print options for curl -K: the token, the vendor header, and that curl fails on an error status. So the\n" +
			"token appears neither in a command line nor in the shell's history. With server.tls, curl accepts the\n" +
			"daemon's own certificate and no other, whatever its name and issuer.",
		Example: "  curl -K <(berth config curl) http://127.0.0.1:8070/containers",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := connector{loader: l}
			d, err := c.connectHost()
			if err != nil {
				return err
			}
			out := "silent\nshow-error\nfail-with-body\n"
			if d.tls != nil {
				out += pin(l)
			}
			for name, values := range d.Header() {
				out += fmt.Sprintf("header = %q\n", name+": "+values[0])
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), out)
			return err
		},
	})
}

// pin returns the options that make curl accept only the configured certificate.
// Its name is not that of the loopback address, and often it is self-signed.
func pin(l *config.Loader) string {
	got, err := l.Load()
	if err != nil || got.Certificate == nil || got.Certificate.Leaf == nil {
		return ""
	}
	sum := sha256.Sum256(got.Certificate.Leaf.RawSubjectPublicKeyInfo)
	return "insecure\npinnedpubkey = \"sha256//" + base64.StdEncoding.EncodeToString(sum[:]) + "\"\n"
}
