// Package root is the root command: it puts the commands of all packages below
// cmd together, runs one command line and maps its error to an exit code.
package root
