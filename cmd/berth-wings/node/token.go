package node

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// scope is what a token of a browser is for.
type scope string

// The scopes, in the words of the panel.
const (
	scopeSocket   scope = "websocket"
	scopeDownload scope = "file-download"
	scopeUpload   scope = "file-upload"
	scopeBackup   scope = "backup-download"
	scopeTransfer scope = "transfer"
)

// claims are those of a token that a panel has signed for a browser.
type claims struct {
	jwt.RegisteredClaims
	Server      string   `json:"server_uuid"`
	User        string   `json:"user_uuid"`
	Once        string   `json:"unique_id"`
	File        string   `json:"file_path"`
	Backup      string   `json:"backup_uuid"`
	Permissions []string `json:"permissions"`
	Scope       *string  `json:"scope"` // nil: of an older panel
}

// has reports whether a token grants a permission. * is all but those of administrators.
func (c *claims) has(permission string) bool {
	return slices.Contains(c.Permissions, permission) || slices.Contains(c.Permissions, "*") && !strings.HasPrefix(permission, "admin")
}

// scope returns what a token without a scope is for, by its other claims.
func (c *claims) scope() scope {
	switch {
	case c.Permissions != nil:
		return scopeSocket
	case c.File != "":
		return scopeDownload
	case c.Backup != "":
		return scopeBackup
	case c.Subject != "":
		return scopeTransfer
	}
	return scopeUpload
}

// The refusals of a token. Pages compare their sentences.
var (
	errExpired    = errors.New("jwt: exp claim is invalid")
	errTokenOld   = errors.New("jwt: created too far in past (denylist)")
	errNoConnect  = errors.New("jwt: missing connect permission")
	errMismatch   = errors.New("jwt: server uuid mismatch")
	errNotPresent = errors.New("jwt: no jwt present")
)

// The memory for tokens.
const (
	onceLife  = time.Hour // longer than any token of the panel is valid
	maxTokens = 100_000
)

// tokens checks what browsers present. A token that was issued in the second of the node's start or
// before it is refused, so what is kept in memory need not survive a restart.
type tokens struct {
	began time.Time

	mu     sync.Mutex
	used   map[string]time.Time // one-time keys, and when they were used
	denied map[string]time.Time // hashes of tokens, and users of servers: older tokens are refused
	scoped bool                 // the panel sends scopes: it is demanded from now on
	pruned time.Time            // when entries were forgotten last
}

func newTokens(began time.Time) *tokens {
	return &tokens{began: began, used: map[string]time.Time{}, denied: map[string]time.Time{}}
}

// parse returns the claims of a token that the panel has signed. Whether it has expired is for check.
func (n *Node) parse(text string) (*claims, error) {
	c := new(claims)
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(text, c, func(*jwt.Token) (any, error) { return []byte(n.config().Token.Reveal()), nil })
	return c, err
}

// check returns why a token is not valid any more.
func (t *tokens) check(c *claims, now time.Time) error {
	switch {
	case c.ExpiresAt == nil || !now.Before(c.ExpiresAt.Time):
		return errExpired
	case c.IssuedAt == nil || c.Server == "" || c.User == "" || !c.IssuedAt.After(t.began.Truncate(time.Second)):
		return errTokenOld
	case t.revoked(c):
		return errTokenOld
	}
	return nil
}

// revoked reports whether a token was denied in the second in which it was issued or later.
func (t *tokens) revoked(c *claims) bool {
	return t.deniedSince(userKey(c.User, c.Server), c.IssuedAt.Time) || c.ID != "" && t.deniedSince(c.ID, c.IssuedAt.Time)
}

func userKey(user, server string) string { return user + "@" + server }

// deny refuses tokens that were issued until now: those with a hash, or of a user for a server.
func (t *tokens) deny(key string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	t.denied[key] = now.Truncate(time.Second)
}

// deniedSince reports whether a hash or a user was denied at a time or later.
func (t *tokens) deniedSince(key string, at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	denied, is := t.denied[key]
	return is && !denied.Before(at.Truncate(time.Second))
}

// fits reports whether a token is for a scope.
func (t *tokens) fits(c *claims, want scope) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Scope == nil {
		return !t.scoped && c.scope() == want
	}
	t.scoped = true
	return slices.Contains(strings.Fields(*c.Scope), string(want))
}

// spend reports whether a one-time token is used for the first time.
func (t *tokens) spend(c *claims, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	if _, again := t.used[c.Once]; again || c.Once == "" || len(t.used) >= maxTokens {
		return false
	}
	t.used[c.Once] = now
	return true
}

// forget removes the entries that no valid token can need, once a minute.
func (t *tokens) forget(now time.Time) {
	if now.Sub(t.pruned) < time.Minute {
		return
	}
	t.pruned = now
	for _, entries := range []map[string]time.Time{t.used, t.denied} {
		maps.DeleteFunc(entries, func(_ string, at time.Time) bool { return now.Sub(at) > onceLife })
	}
}

// errNoToken is the answer to every token that a link must not have: it reveals nothing.
var errNoToken = refuse(404, "The requested resource was not found on this server.")

// link returns the server and the claims of a one-time token in the address. It is used up also if the
// request fails afterwards. The request ends when the user loses the access.
func (n *Node) link(c *call, want scope) (s *server, token *claims, err error) {
	token, err = n.parse(c.URL.Query().Get("token"))
	if err != nil {
		return nil, nil, errNoToken
	}
	now := time.Now()
	s = n.find(token.Server)
	if s == nil || n.tokens.check(token, now) != nil || !n.tokens.spend(token, now) || !n.tokens.fits(token, want) ||
		s.suspended() || s.moves() {
		return nil, nil, errNoToken
	}
	c.revoked = func() bool { return n.tokens.revoked(token) || s.suspended() || n.find(s.uuid) != s }
	return s, token, nil
}
