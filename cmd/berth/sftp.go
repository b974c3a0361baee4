package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"golang.org/x/crypto/ssh"

	"berth/api/sftp"
)

// sftpServer is the SFTP server of the daemon.
type sftpServer struct {
	server  *sftp.Server
	hostKey string // fingerprint
}

// newSFTP creates the SFTP server of a daemon. It returns nil if it is not enabled.
func newSFTP(d *daemon) (*sftpServer, error) {
	c := d.settings.Current().SFTP
	if !c.Enabled {
		return nil, nil
	}
	key, err := sftp.LoadHostKey(c.HostKey)
	if err != nil {
		return nil, err
	}
	server := sftp.New(sftp.Deps{Store: d.store, Settings: d.settings, Files: d.volumes.Files().InPlace(), Registerer: d.metrics, WrongTokens: d.wrong, Log: d.log}, key)
	return &sftpServer{server, ssh.FingerprintSHA256(key.PublicKey())}, nil
}

// shutdown stops the server, if there is one.
func (s *sftpServer) shutdown(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.server.Shutdown(ctx)
}

// listenAll opens the ports of the API and of the SFTP server. files is nil if SFTP is
// not enabled.
func listenAll(d *daemon) (api, files net.Listener, err error) {
	if api, err = listen(d.settings); err != nil || d.sftp == nil {
		return api, nil, err
	}
	c := d.settings.Current().SFTP
	if files, err = net.Listen("tcp", net.JoinHostPort(c.Host, strconv.Itoa(c.Port))); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("listen: %w; set sftp.host and sftp.port to an address of this host that is free", err), api.Close())
	}
	d.log.Info("serving SFTP", slog.String("address", files.Addr().String()), slog.String("host_key", d.sftp.hostKey))
	return api, files, nil
}
