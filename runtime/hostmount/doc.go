// Package hostmount pins directories and files of the host while the engine mounts
// them into a container.
//
// An engine resolves the source of a bind mount by its path, at each create and at
// each start. A container that can write to a parent of the source can replace a
// directory by a link between a check of the path and the engine's call. So the
// package opens a source beneath its allowed directory, follows no links, and bind
// mounts the opened file at a path that only berth can change. The engine receives
// that path. The pin exists only while berth calls the engine: afterwards the
// container has its own mount, and a start that berth did not check finds no source.
//
// The pins are in a tmpfs of their own. An engine in another mount namespace does
// not see them and refuses the mount, instead of mounting an empty directory.
//
// The package must not know containers, specs or the engine.
package hostmount
