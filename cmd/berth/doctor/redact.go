package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"berth/api/client"
	v1 "berth/api/v1"
)

// shortValue is the length below which the value of a container's variable is not a
// secret, but a setting such as "true": replacing it would garble everything.
const shortValue = 6

var (
	mintedToken = regexp.MustCompile(`berth_[0-9a-f]{32}`)
	credentials = regexp.MustCompile(`(?i)(bearer +|basic +|[?&](?:token|key|secret|password)=|(?:password|token|secret)["']?[:=] *["']?)[^\s"'&,}]+`)
	userinfo    = regexp.MustCompile(`://[^/\s"@]+@`)
)

// redactor replaces secrets by ***.
type redactor struct{ known [][]byte } // the longest first: one may contain another

// newRedactor returns a redactor for these secrets, also in JSON and in URLs.
func newRedactor(secrets []string) redactor {
	var r redactor
	for _, s := range secrets {
		quoted, _ := json.Marshal(s) // a string cannot fail to marshal
		for _, form := range []string{s, string(quoted[1 : len(quoted)-1]), url.QueryEscape(s), url.PathEscape(s)} {
			if form != "" {
				r.known = append(r.known, []byte(form))
			}
		}
	}
	slices.SortFunc(r.known, func(a, b []byte) int { return cmp.Or(len(b)-len(a), bytes.Compare(a, b)) })
	r.known = slices.CompactFunc(r.known, bytes.Equal)
	return r
}

func (r redactor) redact(text []byte) []byte {
	hidden := []byte("***")
	text = mintedToken.ReplaceAll(text, hidden) // before a short secret alters a token
	for _, secret := range r.known {
		text = bytes.ReplaceAll(text, secret, hidden)
	}
	text = credentials.ReplaceAll(text, []byte("${1}***"))
	return userinfo.ReplaceAll(text, []byte("://***@"))
}

// secrets returns the secrets of the configuration and the values of the variables of
// the daemon's containers.
func (e *examination) secrets(ctx context.Context) (list []string, err error) {
	c := e.Config.Config
	list = append(list, c.Authorization.Token.Reveal(), c.Remote.Token.Reveal(), c.Backups.S3.SecretKey.Reveal())
	for _, r := range c.Docker.Registries {
		list = append(list, r.Password.Reveal())
	}
	if e.Daemon == nil || !e.daemon().answers {
		return list, nil
	}
	summaries, err := e.Daemon.Containers().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range summaries {
		got, err := e.Daemon.Containers().Get(ctx, s.InternalID)
		if client.StatusOf(err) == 404 {
			continue // it was deleted after the list
		}
		if err != nil {
			return nil, err
		}
		for _, value := range got.Env {
			list = append(list, secretParts(value)...)
		}
	}
	return list, nil
}

// secretParts returns the value of a variable and each line of it, because a key may be
// logged line by line, without those that are too short to be secret.
func secretParts(value string) []string {
	parts := append(strings.Split(value, "\n"), value)
	return slices.DeleteFunc(parts, func(part string) bool { return len(part) < shortValue })
}

// shownConfig returns the configuration as a bundle shows it. Its secrets hide
// themselves; the path of remote.url may be one.
func (e *examination) shownConfig() v1.Config {
	c := e.Config.Config
	if u, err := url.Parse(c.Remote.URL); err == nil && u.Host != "" {
		c.Remote.URL = u.Scheme + "://" + u.Host + "/***"
	}
	return c
}
