// Package startheap keeps the garbage collector out of the start of the program.
//
// The runtime starts its first collection at about 3 MB of heap, which is what
// the inits of all packages allocate, and most of it stays. So the first
// collection is put off in an init that comes before most others: this package
// imports only the standard library, and of the packages without other imports
// the one whose path sorts first is initialised first.
package startheap
