// Package token removes minted tokens once they are no longer valid: they have
// expired, the token that they were minted with is gone, or the configured token
// that they descend from was replaced.
//
// Nothing depends on its being on time: whoever uses a token checks all of that
// first. But for one thing: a configured token that comes back into force revives
// those that it finds still there. It must not know how a secret is checked, or
// what a token allows.
package token
