package node_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// login has the panel let a user in as it did. A key is another one, because the recorded one is secret.
func (p *player) login(t *testing.T, r record) {
	t.Helper()
	sent := r.Body.(map[string]any)
	p.secret = sent["password"]
	text := sent["password"].(string)
	if sent["type"] == "public_key" {
		_, key, err := ed25519.GenerateKey(nil)
		require.NoError(t, err)
		signer, err := ssh.NewSignerFromKey(key)
		require.NoError(t, err)
		p.secret, text = signer, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	}
	grant, is := r.Answer.(map[string]any)
	if !is || r.Status != 200 {
		return
	}
	var permissions []string
	for _, one := range grant["permissions"].([]any) {
		permissions = append(permissions, one.(string))
	}
	p.panel.SetLogin(sent["username"].(string), text, grant["user"].(string), grant["server"].(string), permissions...)
}

// failureLine matches what OpenSSH's client prints about an operation that the node has refused.
var failureLine = regexp.MustCompile(`(?m)^(dest open|remote open|remote delete|remote mkdir) .*$`)

// session carries out a session of OpenSSH's client: the same operations are refused, for the same reasons.
func (p *player) session(t *testing.T, at string, r record) {
	t.Helper()
	auth := ssh.Password(fmt.Sprint(p.secret))
	if key, is := p.secret.(ssh.Signer); is {
		auth = ssh.PublicKeys(key)
	}
	c, err := p.dialSFTP(r.User, auth)
	require.Equal(t, r.RC == 255, err != nil, "%s: %v", at, err)
	if err != nil {
		return
	}
	defer c.Close()
	var want, got []string
	if want = refusedOf[at]; want == nil {
		want = failureLine.FindAllString(strings.Join(r.Out, "\n"), -1)
	}
	for _, command := range r.Commands {
		if line := carryOut(c, strings.Fields(command)); line != "" {
			got = append(got, line)
		}
	}
	require.Equal(t, want, got, at)
}

// carryOut carries out a command of OpenSSH's client, and returns what it prints if the node refuses it.
func carryOut(c *sftp.Client, command []string) string {
	path := "/" + strings.TrimPrefix(command[len(command)-1], "/")
	var err error
	what := command[0] + " %s"
	switch command[0] {
	case "put":
		what, err = "dest open %q", put(c, path, "by sftp\n")
	case "get":
		what, path = "remote open %q", "/"+command[1]
		_, err = get(c, path)
	case "rm":
		what, err = "remote delete %s", c.Remove(path)
	case "rmdir":
		err = c.RemoveDirectory(path)
	case "mkdir":
		what, err = "remote mkdir %q", c.Mkdir(path)
	case "rename":
		err = c.PosixRename("/"+command[1], path)
	case "chmod":
		err = c.Chmod(path, 0o600)
	case "ls":
		_, err = c.ReadDir("/")
	}
	var status *sftp.StatusError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, os.ErrPermission):
		return fmt.Sprintf(what, path) + ": Permission denied"
	case errors.As(err, &status) && status.FxCode() == sftp.ErrSSHFxFailure:
		return fmt.Sprintf(what, path) + ": Failure"
	}
	return fmt.Sprintf(what, path) + ": " + err.Error()
}
