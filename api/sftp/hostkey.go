package sftp

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
)

// LoadHostKey reads the private key in a file, or makes one if there is no file. A new
// file has mode 0600 and appears with its whole content.
func LoadHostKey(file string) (ssh.Signer, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeHostKey(file)
	}
	if err != nil {
		return nil, fmt.Errorf("sftp.host_key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("sftp.host_key: %s: %w; restore the file, or remove it to get a new key", file, err)
	}
	if kind := key.PublicKey().Type(); kind != ssh.KeyAlgoED25519 {
		return nil, fmt.Errorf("sftp.host_key: %s: the key is %s; make one with `ssh-keygen -t ed25519 -N ''`", file, kind)
	}
	return key, nil
}

// makeHostKey writes a new key to a file and returns it.
func makeHostKey(file string) ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
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
