// Package keys builds every key of the store. No other package puts key bytes together.
//
// All keys sort by bytes.Compare. Integers are big endian. A value inside a key is encoded by AppendExact (lossless,
// for identity) or AppendIndex (sortable, long values cut, for index entries). Both encodings are self-delimiting: no
// length precedes them.
//
//	space  layout                                                              -> value
//	0x10   meta:   kind, parent id, name                                       -> catalog entry (core/catalog)
//	0x11   job:    0x01, kind, generation u32                                  -> lease (core/lease)
//	               0x02, id of a process                                       -> sign of life (core/lease)
//	               0x03, kind, length of the name u8, name                     -> record of an API (core/store)
//	               0x03, kind, length of the name u8, name, 0x01               -> the record's part
//	0x12   journal: 0x01                                                       -> state of the journal (core/journal)
//	               0x02, time u64, number u32                                  -> entry of the journal
//	               0x03                                                        -> time for the next process
//	               0x04                                                        -> end of the journal
//	               0x05, time u64, process u64, number u32                     -> part of a commit that isn't in it
//	               0x06                                                        -> time of the catalog's last change
//	0x20   data:   generation u32, slot u32, kind u8, ...                      with, by kind:
//	  0x01 head      -                                                         -> Head (core/store)
//	  0x02 logical   place, tuple                                              -> LogicalHead; none where the key is
//	      the id
//	  0x03 fact      path id u64                                               -> Fact (core/store)
//	  0x10 item      place, tuple, id                                          -> envelope + document
//	  0x11 chunk     item key, n                                               -> reserved: part of an item above the
//	      engine's value limit
//	  0x21 number    counter of the item number, 5 bytes                       -> item suffix
//	  0x31 index     path id u64, class and value, order number, name          -> flag byte (composite index: the
//	      values of its columns)
//	  0x40 unique    tuple, policy number u16, values                          -> id
//	  0x41 declared  index number u32, value (core/index); slot 0xFFFFFFFF     -> item suffix
//	  0x50 feed      LSN u64, position u16                                     -> item suffix
//	  0x51 removed   LSN u64, item suffix                                      -> one byte; while the slot is copied
//	  0x58 log       LSN u64, position u32                                     -> log entry (core/store)
//	  0x60 ttl       expiry s u64, item suffix                                 -> one byte
//
// The parts of a key:
//
//   - place: the sortable placement of a partition key (core/epk), 4 bytes with V1, 16 with V2, 16 for each level with
//     MultiHash.
//   - tuple: AppendExact of each component of the partition key. id: AppendExact of the id.
//   - item suffix: place, tuple, id. It identifies an item inside its slot.
//   - order number and name: the item's number, and tuple and id. Where the partition key is the id, they are the
//     counter of the number, and the id (see Entries).
//
// All keys of a slot have the same first nine bytes, so a slot's items, index, feed and heads are neighbours. A
// generation belongs to one container forever. When the container is dropped, the range of its generation is deleted
// and the number is never used again.
//
// Example: the item {"id": "a"} of generation 7, slot 3, in a container with V2 whose partition key is the id:
//
//	20 00000007 00000003 10    space, generation, slot, kind item
//	xx... (16 bytes)           place: the hash of "a"
//	28 61 00 01  28 61 00 01   tuple ("a"), id ("a")
package keys
