package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// settingsOf returns settings that reload path, as the daemon's do.
func settingsOf(t *testing.T, path string) *Settings {
	t.Helper()
	l := newTestLoader(t, path)
	first, err := l.Load()
	require.NoError(t, err)
	return NewSettings(first, l.Load)
}

const tokenLine = "authorization: {token: " + fileToken + "}\n"

func TestReloadAppliesLiveKeys(t *testing.T) {
	path := writeFile(t, tokenLine)
	s := settingsOf(t, path)
	require.NoError(t, os.WriteFile(path, []byte(tokenLine+`
server: {port: 9000, allowed_origins: [https://a]}
storage: {data_path: /elsewhere}
sftp: {host_keys: [ecdsa]}
log: {level: debug, format: json}
remote: {enabled: true, url: "https://panel", token: t}
`), 0o600))
	waiting, err := s.Reload()
	require.NoError(t, err)
	require.Equal(t, []string{"server.port", "sftp.host_key", "sftp.host_keys", "storage.data_path", "storage.volumes_path", "backups.path", "log.format"}, waiting)
	c := s.Current()
	require.Equal(t, 8070, c.Server.Port)
	require.Equal(t, "auto", c.Log.Format)
	require.Equal(t, "debug", c.Log.Level)
	require.Equal(t, "https://panel", c.Remote.URL)
	require.Equal(t, []string{"https://a"}, c.Server.AllowedOrigins)

	again, err := s.Reload()
	require.NoError(t, err)
	require.Equal(t, waiting, again, "a pending key is named until the restart")
	require.NoError(t, os.WriteFile(path, []byte(tokenLine), 0o600))
	none, err := s.Reload()
	require.NoError(t, err)
	require.Equal(t, []string{}, none)
}

func TestReloadKeepsOldConfigOnError(t *testing.T) {
	path := writeFile(t, tokenLine)
	s := settingsOf(t, path)
	before := s.Current()
	require.NoError(t, os.WriteFile(path, []byte("log: {level: debug}\nserver: {port: x}"), 0o600))
	_, err := s.Reload()
	var faults v1.FieldErrors
	require.ErrorAs(t, err, &faults)
	require.Equal(t, before, s.Current())
	require.NoError(t, os.Remove(path))
	_, err = s.Reload()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, before, s.Current())
}

// A file can be valid as a whole and invalid together with the keys that wait for a restart.
func TestReloadKeepsAuthorizationUntilRestart(t *testing.T) {
	path := writeFile(t, tokenLine)
	s := settingsOf(t, path)
	require.NoError(t, os.WriteFile(path, []byte("server: {host: 127.0.0.1}\nauthorization: {enabled: false}"), 0o600))
	_, err := s.Reload()
	require.ErrorContains(t, err, "authorization.token", "the token is live, and must not be removed while authorization is enabled")
	require.NoError(t, os.WriteFile(path, []byte("server: {host: 127.0.0.1}\nauthorization: {enabled: false, token: "+fileToken+"}"), 0o600))
	waiting, err := s.Reload()
	require.NoError(t, err)
	require.Equal(t, []string{"server.host", "authorization.enabled"}, waiting)
	require.True(t, s.Current().Authorization.Enabled)
}

func TestConcurrentReloads(t *testing.T) {
	path := writeFile(t, tokenLine)
	s := settingsOf(t, path)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				_, err := s.Reload()
				if err != nil || s.Current().Server.Port != 8070 {
					t.Error("reload: ", err)
				}
			}
		})
	}
	wg.Wait()
}

// writePair writes a certificate of the given serial number.
func writePair(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "berth"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

func servedSerial(t *testing.T, s *Settings) int64 {
	t.Helper()
	certificate, err := s.GetCertificate(nil)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	require.NoError(t, err)
	return parsed.SerialNumber.Int64()
}

func TestReloadReplacesCertificate(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, 1)
	withTLS := tokenLine + "server: {tls: {cert: " + dir + "/cert.pem, key: " + dir + "/key.pem}}"
	path := writeFile(t, withTLS)
	s := settingsOf(t, path)
	require.Equal(t, int64(1), servedSerial(t, s))

	writePair(t, dir, 2)
	waiting, err := s.Reload()
	require.NoError(t, err)
	require.Empty(t, waiting)
	require.Equal(t, int64(2), servedSerial(t, s))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("x"), 0o600))
	_, err = s.Reload()
	require.ErrorContains(t, err, "server.tls")
	require.Equal(t, int64(2), servedSerial(t, s))

	require.NoError(t, os.WriteFile(path, []byte(tokenLine), 0o600))
	waiting, err = s.Reload()
	require.NoError(t, err)
	require.Equal(t, []string{"server.tls.cert", "server.tls.key"}, waiting)
	require.Equal(t, int64(2), servedSerial(t, s), "TLS is switched off at the next start")
}

func TestNoCertificateWithoutTLS(t *testing.T) {
	s := settingsOf(t, writeFile(t, tokenLine))
	_, err := s.GetCertificate(nil)
	require.Error(t, err)
}
