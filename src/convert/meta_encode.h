/* META's payload from a header in host form. Internal to src/convert. */
#ifndef SM_CONVERT_META_ENCODE_H
#define SM_CONVERT_META_ENCODE_H

#include "decode/trace.h"
#include "encode/tlv.h"

/* Room that the payload of `meta` needs at most. */
size_t sm_meta_bound(const struct sm_meta *meta);
void sm_meta_encode(struct sm_tlv_writer *w, const struct sm_meta *meta);

#endif
