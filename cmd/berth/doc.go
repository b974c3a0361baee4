// Command berth is the daemon, and its command line.
//
// This package creates the parts of the daemon, connects them, starts them in a
// defined order and stops them in the reverse order. It decides nothing about
// containers. The configuration is in package config, the command line in package cli.
package main
