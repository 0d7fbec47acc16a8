// Package workspace prepares the directories that sessions of a service work in, and
// shows what they made of them: the differences, and single files.
//
// A session works in nothing, in a directory below the data of the service, in a
// directory of this machine that the operator allows, or in a git repository at a
// revision. Repositories are fetched without history. The credentials for that are the
// operator's: no address may contain any, git gets them in its environment alone, and
// nothing of them is left in the directory.
package workspace
