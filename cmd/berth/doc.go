// Command berth is the daemon, and its command line.
//
// This package assembles: it reads the configuration, makes every part and
// hands each what it needs of the others, starts them in a stated order and
// stops them in the reverse one. It decides nothing about containers.
package main
