// Package s3test provides a real S3 server to tests: versitygw over a directory of the
// test, behind a proxy that can inject faults. hack/versitygw.sh builds the server once
// per machine from the Go module proxy.
//
// Only tests import it. It looks at the server with requests of its own, which pass no
// fault, so that its observations do not depend on the code under test.
package s3test
