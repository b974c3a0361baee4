package auth

import v1 "berth/api/v1"

// Limits on the open sessions of minted tokens: of one token and those minted with
// it, of one container, and in total. Each is below the limit of the hub, so that the
// configured token can always open more.
const (
	perToken     = 64
	perContainer = 192  // of a hub's 256
	perNode      = 1536 // of a hub's 2048
)

// counts counts the open sessions of minted tokens.
type counts struct {
	roots      map[string]int // by the id of the first minted token in the line of parents
	containers map[string]int // listeners, by internal_id
	all        int
}

func newCounts() counts { return counts{roots: map[string]int{}, containers: map[string]int{}} }

// add counts a session, or returns an error of the code TooManySessions.
func (c *counts) add(k *Session) error {
	if k.Principal.TokenID == "" {
		return nil
	}
	switch {
	case c.roots[k.Principal.root] >= perToken:
		return v1.Errorf(v1.TooManySessions, "Token has %d open sockets and transfers, the most for one token: close some", perToken)
	case k.Container != "" && c.containers[k.Container] >= perContainer:
		return v1.Errorf(v1.TooManySessions, "Container has %d open sockets, the most for minted tokens: close some", perContainer)
	case c.all >= perNode:
		return v1.Errorf(v1.TooManySessions, "Minted tokens have %d open sockets and transfers, the most in all: try again later", perNode)
	}
	c.change(k, 1)
	return nil
}

// restore counts a session that was counted before.
func (c *counts) restore(k *Session) {
	if k.Principal.TokenID != "" {
		c.change(k, 1)
	}
}

func (c *counts) remove(k *Session) {
	if k.Principal.TokenID != "" {
		c.change(k, -1)
	}
}

func (c *counts) change(k *Session, by int) {
	c.all += by
	add(c.roots, k.Principal.root, by)
	if k.Container != "" {
		add(c.containers, k.Container, by)
	}
}

// add changes a count, and removes it if it is 0.
func add(m map[string]int, key string, by int) {
	if m[key] += by; m[key] == 0 {
		delete(m, key)
	}
}
