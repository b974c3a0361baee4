// Package auth decides who may do what: it mints, verifies, spends and revokes
// tokens, and ends sessions of tokens that are no longer valid.
//
// A minted token names the token that it was minted with (its parent) and the
// fingerprint of the configured token that all of them descend from (its
// issuer). It is valid while it has not expired, every parent is stored, and its
// issuer is the configured token in force. So revoking one token ends the tokens
// minted with it, and replacing the configured token ends all of them, without
// any other record being written.
//
// The token of a request is verified when the request begins, and again when its
// body was read. Anything that lasts longer (a socket, a download, an upload) is a
// Session, which Sessions ends.
//
// It is the only writer of the specs of tokens. It must not know HTTP or sockets.
package auth
