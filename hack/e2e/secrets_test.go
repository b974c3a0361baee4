package e2e_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// TestSecretsAreNotExposed uses every kind of secret, correctly and
// incorrectly, with the log level debug. It searches for them in everything that
// it reads. At its end, as for every daemon, the log, metrics, refusals,
// environment, arguments and containers are searched.
func TestSecretsAreNotExposed(t *testing.T) {
	t.Parallel()
	p, password := newPanel(t), "Pass"+berthtest.NewToken()[6:]
	registry := enginetest.StartLockedRegistry(t, "berth", password)
	b := berthtest.Start(t, berthtest.Options{Config: "log: {level: debug}\n" + p.remote() +
		fmt.Sprintf("\ndocker: {registries: {%q: {username: berth, password: %s}}}", registry.Addr, password)})
	tokens := []string{mint(t, b, `{}`).Token, mint(t, b, `{"remove_on_use":true}`).Token, mint(t, b, `{"scopes":["read"]}`).Token}
	for _, token := range append(tokens, b.Token) {
		misuse(t, b, token)
	}
	p.answer(func(panelRequest) int { return 401 })
	image := registry.Push(t, b.Engine, enginetest.Busybox(t), "private:1")
	t.Cleanup(func() { b.Engine.RemoveImage(t, image) })
	b.Started(t, "mc", berthtest.Spec{"image": image, "registry_auth": registry.Addr, "install_script": "env; cat /proc/1/environ",
		"startup_command": "env; cat /proc/*/environ /proc/*/cmdline; sleep 1000"})
	berthtest.Until(t, wait, "the panel refuses", func() bool { return metric(t, b, failures("unauthorized")) > 0 })

	misplaced(t, b, tokens[0])
	other := "Other" + berthtest.NewToken()[6:]
	reload(t, b, "password: "+password, "password: "+other)
	missing := b.Do(t, "POST", "/containers", b.Body(t, "no", berthtest.Spec{"image": registry.Addr + "/private:2", "registry_auth": registry.Addr}))
	t.Logf("an image with a wrong password: %d %s", missing.Status, missing.Body)

	for _, path := range []string{"/containers", "/containers/mc", "/containers/no", "/containers/mc/logs", "/containers/mc/install-logs", "/events",
		"/network/ports", "/volumes", "/auth/tokens", "/healthz", "/readyz", "/openapi.yaml"} {
		berthtest.Search(t, b, path, string(b.Do(t, "GET", path, nil).Body))
	}
	require.Contains(t, string(b.Do(t, "GET", "/containers/mc/logs", nil).Body), "HOME=", "the container has printed its environment")
	b.Restart(t)
	inspected(t, b)
	files := inFiles(t, b)
	t.Logf("%d tokens and passwords, %d files of the store", len(tokens)+4, files)
}

// misuse sends a token in places where none belongs.
func misuse(t *testing.T, b *berthtest.Berth, token string) {
	t.Helper()
	bearer := "Bearer " + token
	for _, header := range [][]string{
		{"Authorization", token}, {"Authorization", "Basic " + token}, {"Authorization", bearer + "x"}, {"Authorization", bearer + ", " + bearer},
		{"Accept", token}, {"Content-Encoding", token}, {"Content-Type", token}, {"If-Match", token}, {"X-Forwarded-For", token}, {"Origin", token},
	} {
		b.Do(t, "POST", "/auth/tokens", `{"ttl":"0s"}`, header...)
	}
	for _, path := range []string{"/" + token, "/containers/" + token, "/containers?token=" + token, "/network/ports/" + token + "/1",
		"/auth/tokens/" + token, "/volumes/" + token + "/files", "/network/ports/random?ip=" + token, "/containers/mc/logs?since=" + token} {
		b.Do(t, "GET", path, nil)
	}
	for _, body := range []string{token, `{"ttl":"` + token + `"}`, `{"scopes":["` + token + `"]}`, `{"containers":["` + token + ` "]}`} {
		b.Do(t, "POST", "/auth/tokens", body)
	}
	if socket, _, err := b.Dial("/ws?token="+token+"0", nil); err == nil {
		socket.Close()
		t.Error("a wrong token opens a socket")
	}
}

// misplaced reloads configurations with a secret in the wrong place, or cut off.
// Each is refused, and the error does not contain the secret.
func misplaced(t *testing.T, b *berthtest.Berth, secret string) {
	t.Helper()
	good, err := os.ReadFile(b.Config)
	require.NoError(t, err)
	for _, change := range [][2]string{
		{"authorization: {", "authorization: {token2: " + secret + ", "}, {"authorization: {", "authorization: {token: " + secret + ", "},
		{"authorization: {token: ", "authorization: {token: X"}, {"authorization: {", "authorization: [" + secret + "]\nx: {"},
		{"authorization: {", "authorization: {max_ttl: " + secret + ", "}, {"port: ", "port: " + secret}, {"host: ", "host: {" + secret + ": 1}#"},
		{"remote: {enabled: true", "remote: {enabled: " + secret}, {"url: \"", "url: \"" + secret}, {"log: {level: debug", "log: {level: " + secret},
		{"log: {level: debug}", "log: {level: debug"}, {"firewall: {backend: none}", "firewall: {backend: none}\n" + secret},
	} {
		text := strings.Replace(string(good), change[0], change[1], 1)
		require.NotEqual(t, string(good), text, change[0])
		require.NoError(t, os.WriteFile(b.Config, []byte(text), 0o600))
		answer := b.Do(t, "POST", "/remote/config/reload", nil)
		require.Equal(t, 400, answer.Status, "%s: %s", change[1], answer.Body)
		berthtest.Search(t, b, "the refusal of "+change[1], string(answer.Body))
	}
	b.WriteConfig(t, string(good))
	b.Must(t, "POST", "/remote/config/reload", nil)
}

// inspected searches the engine's description of all containers.
func inspected(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	all := b.Containers(t, "")
	require.NotEmpty(t, all)
	for _, one := range all {
		found, ok := b.Engine.Inspect(t, one.ID)
		require.True(t, ok)
		text, err := json.Marshal(found.Raw)
		require.NoError(t, err)
		require.Contains(t, string(text), "io.berth.store")
		berthtest.Search(t, b, "container "+one.ID, string(text))
	}
}

// inFiles searches every file of the daemon's data: minted tokens are stored as
// hashes, and other secrets only in the configuration.
func inFiles(t *testing.T, b *berthtest.Berth) (files int) {
	t.Helper()
	err := filepath.WalkDir(b.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) { // the store tidies up
			return nil
		}
		files++
		berthtest.Search(t, b, path, string(text))
		return err
	})
	require.NoError(t, err)
	require.NotZero(t, files)
	return files
}
