// Package pathtest has the table of hostile paths with which the tests of the volumes,
// of HTTP and of SFTP try to leave a volume.
package pathtest
