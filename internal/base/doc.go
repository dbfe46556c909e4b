// Package base holds the words every other package speaks: keys, sequence
// numbers, kinds, file names, file headers, errors and the Iterator interface.
// It imports nothing of ours and does no input or output.
//
// # Glossary
//
//	key        the internal key: a bucket prefix followed by the user's key (bucketkey.go)
//	sequence   a number every entry of every commit gets, one after another; a snapshot is one sequence
//	kind       what an entry does: put, delete, delete a range
//	entry      (key, sequence, kind, value)
//	frame      one checksummed record of a log or manifest file; one commit is one frame
//	segment    one log file, which is at the same time the memory (arena) of one memtable
//	memtable   hash slots over a segment's arena, sorted only when somebody iterates
//	table      an immutable sorted file of blocks; a block is a key page and value pages
//	run        an ordered source of entries: a memtable, an L0 table group, a level
//	edit       one change of the set of tables, written as one frame of the manifest
//	version    the immutable set of tables after an edit
//	position   a place in the log: segment number and offset (Position)
package base
