// Package sftp serves the files of volumes to SFTP clients.
//
// A user logs in with the id of a volume, or with the internal_id of a container, and with a
// token as password or with a public key of a token. The root of the session is the volume. A
// session is an auth.Session: it ends within a second when its token is no longer valid or its
// volume is deleted, in the middle of a transfer too.
//
// Package ssh of x/crypto is the transport, and the RequestServer of pkg/sftp speaks the
// protocol. In front of it a guard keeps the order of requests and bounds those in flight. The rules about paths,
// links and limits are those of package volume, behind the interfaces in deps.go. Each change has
// an entry in the audit log before it is acknowledged; the writes of one handle are one.
//
// A client costs bounded memory and file handles whatever it sends: connections without a login
// are few and end after 30 s, channels and handles are counted per session and in all, what a
// client sends faster than it is stored fills its window of 2 MiB, a client that reads nothing
// stops its own session only, and one that fills its window with tiny packets is disconnected.
//
// The package must not know how files are stored, nor anything of HTTP.
package sftp
