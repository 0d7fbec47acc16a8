// Package try is the command agent try: run a command on a layer over the workspace,
// show what it would change, and apply or drop it.
package try
