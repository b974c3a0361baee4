// Package token removes minted tokens that are no longer valid: they have expired,
// the token that minted them was removed, or the configured token that they descend
// from was replaced.
//
// Authentication checks all of that for each request, so a late removal is harmless,
// with one exception: if an earlier configured token is configured again, those of
// its tokens that were not removed become valid again. The package does not know how
// a secret is checked or what a token allows.
package token
