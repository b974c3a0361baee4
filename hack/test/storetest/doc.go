// Package storetest damages records of a store, for tests of what else still works.
//
// Only tests import it. A store never writes such a record itself.
package storetest
