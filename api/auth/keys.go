package auth

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	v1 "berth/api/v1"
	"berth/store"
)

// Limits on the public keys of a token.
const (
	maxKeys    = 16
	minRSABits = 2048
)

// CheckKeys adds the errors of the field ssh_keys to f, and returns the keys as they are
// stored. A line is one of an authorized_keys file: type, base64, and an optional comment.
func CheckKeys(f *v1.FieldErrors, lines []string) (keys []string) {
	if len(lines) > maxKeys {
		f.Add("ssh_keys", "must have at most %d keys", maxKeys)
		return nil
	}
	for i, line := range lines {
		key, err := parseKey(line)
		if err != nil {
			f.Add(fmt.Sprintf("ssh_keys[%d]", i), "%s", err.Error())
			continue
		}
		if text := KeyText(key); !slices.Contains(keys, text) {
			keys = append(keys, text)
		}
	}
	return keys
}

// parseKey parses a line of an authorized_keys file without options.
func parseKey(line string) (ssh.PublicKey, error) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil, strings.ContainsAny(strings.TrimSpace(line), "\r\n"), len(rest) > 0:
		return nil, errors.New("must be one line of an authorized_keys file, such as ssh-ed25519 AAAA…")
	case len(options) > 0:
		return nil, errors.New("must have no options before the key")
	}
	if public, ok := key.(ssh.CryptoPublicKey); ok {
		if long, ok := public.CryptoPublicKey().(*rsa.PublicKey); ok && long.N.BitLen() < minRSABits {
			return nil, fmt.Errorf("must be an RSA key of at least %d bits, or another key", minRSABits)
		}
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSA:
		return key, nil
	}
	return nil, fmt.Errorf("must be an ed25519, ecdsa or rsa key, and not %s", key.Type())
}

// KeyText returns a public key as a token stores it: type and base64.
func KeyText(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// KeyFingerprint returns the fingerprint of a stored key, as ssh-keygen -l shows it.
func KeyFingerprint(text string) string {
	key, err := parseKey(text)
	if err != nil {
		return "invalid"
	}
	return ssh.FingerprintSHA256(key)
}

// AuthenticateKey returns the principals of the valid tokens that have a public key,
// which is in the form of KeyText. The caller has to verify that the client owns the key.
func AuthenticateKey(s *store.Store, c v1.AuthorizationConfig, key string) (list []Principal, err error) {
	tx, issuer := s.Read(), c.Token.Fingerprint()
	for _, id := range store.TokensByKey(tx, key) {
		o, root, err := valid(tx, id, issuer)
		if errors.Is(err, ErrUnauthorized) || err == nil && (o.Spec.Spent || !slices.Contains(o.Spec.SSHKeys, key)) {
			continue
		}
		if err != nil {
			return list, err
		}
		p, err := principalOf(o, root).resolve(tx)
		if err != nil {
			return list, err
		}
		list = append(list, p)
	}
	return list, nil
}
