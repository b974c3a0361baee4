// Package sftp compares berth's SFTP server with OpenSSH's, both served to OpenSSH's
// sftp, in turns in the same run: go test -bench . ./hack/bench/sftp. The server comes from
// hack/sshd.sh and runs in a mount namespace, so the benchmark needs root.
package sftp
