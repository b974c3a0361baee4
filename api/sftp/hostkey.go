package sftp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/crypto/ssh"

	v1 "berth/api/v1"
)

// rsaBits is the size of a new RSA key.
const rsaBits = 3072

// LoadHostKeys reads the private keys of a configuration, ed25519 first, and makes those whose file is
// missing. A new file has mode 0600 and appears with its whole content.
func LoadHostKeys(c v1.SFTPConfig) (keys []ssh.Signer, err error) {
	for _, kind := range append([]string{v1.HostKeyED25519}, c.HostKeys...) {
		key, err := loadHostKey(v1.HostKeyFile(c.HostKey, kind), kind)
		if err != nil {
			return nil, fmt.Errorf("sftp.host_key: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func loadHostKey(file, kind string) (ssh.Signer, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeHostKey(file, kind)
	}
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; restore the file, or remove it to get a new key", file, err)
	}
	allowed := map[string][]string{ // without SHA-1
		v1.HostKeyED25519: {ssh.KeyAlgoED25519},
		v1.HostKeyECDSA:   {ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521},
		v1.HostKeyRSA:     {ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
	}[kind]
	found := key.PublicKey().Type()
	signer, is := key.(ssh.AlgorithmSigner)
	switch {
	case found == ssh.KeyAlgoRSA && kind == v1.HostKeyRSA && is:
		return ssh.NewSignerWithAlgorithms(signer, allowed)
	case !slices.Contains(allowed, found):
		return nil, fmt.Errorf("%s: the key is %s; make one with `ssh-keygen -t %s -N ''`", file, found, kind)
	}
	return key, nil
}

// generateKey returns a new private key.
func generateKey(kind string) (crypto.PrivateKey, error) {
	switch kind {
	case v1.HostKeyRSA:
		return rsa.GenerateKey(rand.Reader, rsaBits)
	case v1.HostKeyECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}

// makeHostKey writes a new key to a file and returns it.
func makeHostKey(file, kind string) ([]byte, error) {
	key, err := generateKey(kind)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "berth")
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(block)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".new-*") // mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(text)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return nil, err
	}
	return text, os.Rename(temp.Name(), file)
}
