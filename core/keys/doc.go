// Package keys builds every key of the store. No other package puts key bytes together.
//
// All keys sort by bytes.Compare. Integers are big endian. A value inside a key is encoded by AppendExact (lossless,
// for identity) or AppendIndex (order first, cut when long, for index entries); both end by themselves, so what follows
// can be read without a length.
//
//	space  layout                                                              -> value
//	0x10   meta:   kind, parent id, name                                       -> catalog entry (core/catalog)
//	0x11   job:    kind, parent id, name                                       -> progress of a background job
//	    (core/jobs)
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
//	  0x50 feed      LSN u64, position u16                                     -> item suffix
//	  0x58 log       LSN u64, position u16                                     -> reserved: all-versions change log
//	  0x60 ttl       expiry s u64, item suffix                                 -> one byte
//	  0x70 once      session id, transaction number, statement                 -> reserved: stored result of a
//	      retryable write
//
// place is the sortable placement of a partition key (core/epk): 4 bytes with V1, 16 with V2, 16 a level with
// MultiHash. tuple is AppendExact of each partition key component, id is AppendExact of the id. The item suffix is
// place, tuple, id: what names an item inside its slot. Order number and name are the item's number and tuple, id;
// where the partition key is the id, the number's counter and the id (Entries). Everything of a slot shares the first
// nine bytes, so a slot's items, index, feed and heads are neighbours. A generation belongs to one container for good;
// dropping the container drops the generation's range and the number is never used again.
package keys
