// Command berth-wings is a node for panels of the Pterodactyl and Pelican family: to the panel and its
// customers' browsers it is a node of the kind that they know; behind it everything is berth's public
// HTTP interface.
//
// config is the node's file, panel what the node asks its panel, node what others ask the node. The rules that make a container of a
// server of the panel are those of package egg, as for `berth import egg`.
package main
