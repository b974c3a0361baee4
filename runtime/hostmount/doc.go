// Package hostmount pins directories and files of the host while the engine
// mounts them into a container.
//
// An engine resolves the source of a bind mount by its path, at each create and
// at each start. A container that has a parent of it writable can replace a
// directory by a link between a check of the path and the engine's use. So a
// source is opened beneath its allowed directory, following no link, and what
// was opened is bind mounted at a path that only berth can change. The engine
// gets that path. It exists only while berth calls the engine: afterwards the
// container has its own mount, and a start that berth did not check finds no source.
//
// The pins lie in a tmpfs of their own. An engine in another mount namespace
// sees no source then, and refuses, where it would mount an empty directory.
//
// It must not know containers, specs or the engine.
package hostmount
