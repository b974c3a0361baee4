package node_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"mime/multipart"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"berth/hack/test/paneltest"
)

// link returns a token for a link to alpha, with a one-time key of its own.
func link(t *testing.T, scope string, more map[string]any) string {
	claims := map[string]any{"server_uuid": alpha, "scope": scope, "unique_id": rand.Text()}
	for name, value := range more {
		claims[name] = value
	}
	return paneltest.Sign(t, claims)
}

// form returns a multipart body with files, "field name content", and its type.
func form(t *testing.T, files ...string) (body, kind string) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for _, file := range files {
		parts := strings.SplitN(file, " ", 3)
		w, err := m.CreateFormFile(parts[0], parts[1])
		require.NoError(t, err)
		_, err = w.Write([]byte(parts[2]))
		require.NoError(t, err)
	}
	require.NoError(t, m.Close())
	return b.String(), m.FormDataContentType()
}

// TestLinks uploads and downloads with the links of a panel, and with others.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	upload := func(token, directory string, files ...string) paneltest.Answer {
		t.Helper()
		body, kind := form(t, files...)
		return w.Do(t, "POST", "/upload/file?token="+token+"&directory="+url.QueryEscape(directory), body, "Content-Type", kind, "Authorization", "", "Origin", w.panel.URL)
	}
	download := func(token string) paneltest.Answer {
		t.Helper()
		return w.Do(t, "GET", "/download/file?token="+token, nil, "Authorization", "")
	}
	const gone = "The requested resource was not found on this server."
	once := link(t, "file-upload", nil)
	a := upload(once, "/notes", "files up.bin uploaded", "files ../../evil.txt x")
	require.Equal(t, 200, a.Status, a.Body)
	require.Empty(t, a.Body)
	require.Equal(t, w.panel.URL, a.Header.Get("Access-Control-Allow-Origin"))
	w.Want(t, 200, "GET", "/api/servers/"+alpha+"/files/contents?file=notes/evil.txt", nil)
	require.Equal(t, gone, upload(once, "/notes", "files again.bin x").Error())
	require.Equal(t, "No files were found on the request body.", upload(link(t, "file-upload", nil), "/", "wrong x.bin x").Error())
	large := strings.Repeat("x", 1<<20)
	require.Equal(t, 200, upload(link(t, "file-upload", nil), "/", "files fits.bin "+large).Status)
	require.Equal(t, "File huge.bin is larger than the maximum file upload size of 1 MB.", upload(link(t, "file-upload", nil), "/", "files huge.bin "+large+"x").Error())
	require.Equal(t, 403, upload(link(t, "file-upload", nil), "/", "files secret.txt x").Status)
	require.Equal(t, 404, upload(link(t, "file-upload", nil), "/../..", "files x.txt x").Status)
	w.Want(t, 404, "GET", "/api/servers/"+alpha+"/files/contents?file=huge.bin", nil)

	file := map[string]any{"file_path": "/notes/up.bin"}
	once = link(t, "file-download", file)
	a = download(once)
	require.Equal(t, "uploaded", a.Body)
	require.Equal(t, "8", a.Header.Get("Content-Length"))
	require.Equal(t, `attachment; filename="up.bin"`, a.Header.Get("Content-Disposition"))
	require.Equal(t, "application/octet-stream", a.Header.Get("Content-Type"))
	require.Equal(t, gone, download(once).Error())
	with := func(name string, value any) map[string]any {
		return map[string]any{"file_path": "/notes/up.bin", name: value}
	}
	now := time.Now().Unix()
	for what, token := range map[string]string{"scope": link(t, "file-upload", file), "of a socket": link(t, "websocket", file), "no scope": link(t, "", with("scope", nil)),
		"expired": link(t, "file-download", with("exp", now)), "another server": link(t, "file-download", with("server_uuid", beta)),
		"before the start": link(t, "file-download", with("iat", now-3600)), "no user": link(t, "file-download", with("user_uuid", nil)),
		"no key": link(t, "file-download", with("unique_id", nil)), "rubbish": "x", "signature": link(t, "file-download", file) + "x"} {
		require.Equal(t, gone, download(token).Error(), what)
	}
	claims := jwt.MapClaims{"server_uuid": alpha, "user_uuid": paneltest.User, "scope": "file-download", "file_path": "/notes/up.bin", "iat": now, "exp": now + 600}
	for _, method := range []jwt.SigningMethod{jwt.SigningMethodHS256, jwt.SigningMethodHS384, jwt.SigningMethodHS512, jwt.SigningMethodNone} {
		claims["unique_id"] = rand.Text()
		key := any([]byte(paneltest.Token))
		if method == jwt.SigningMethodNone {
			key = jwt.UnsafeAllowNoneSignatureType
		}
		token, err := jwt.NewWithClaims(method, claims).SignedString(key)
		require.NoError(t, err)
		require.Equal(t, method == jwt.SigningMethodHS256, download(token).Status == 200, method.Alg())
	}
	require.Equal(t, 404, download(link(t, "file-download", with("file_path", "/../../etc/passwd"))).Status)
	require.Equal(t, 404, download(link(t, "file-download", with("file_path", "/none"))).Status)
	require.Equal(t, "Cannot perform that action: file is a directory.", download(link(t, "file-download", with("file_path", "/notes"))).Error())

	before := link(t, "file-download", file)
	w.Want(t, 204, "POST", "/api/deauthorize-user", map[string]any{"user": paneltest.User, "servers": []string{alpha}})
	require.Equal(t, gone, download(before).Error())

	var sent struct {
		Data []struct {
			Event    string
			Metadata map[string]string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(w.panel.Await(t, "POST /activity", 1).Body), &sent))
	require.Equal(t, "server:file.uploaded", sent.Data[0].Event)
	require.Equal(t, map[string]string{"file": "up.bin", "directory": "/notes"}, sent.Data[0].Metadata)
}
