// Package token removes minted tokens once they have expired.
//
// Nothing depends on its being on time: whoever uses a token looks at its
// expiry first. It must not know how a token is checked, or what it allows.
package token
