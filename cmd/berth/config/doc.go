// Package config loads the daemon's configuration: the defaults, then the file,
// then the environment, then the command line. It writes a new file with a fresh
// token, and it reloads the file while the daemon runs.
//
// load.go loads all of it, yaml.go the file, env.go the environment, keys.go names the keys.
// write.go writes files, settings.go has the configuration in force.
//
// The keys and their meaning are api/v1's; this package knows where they come from
// and which of them can change without a restart. It prints nothing.
package config
