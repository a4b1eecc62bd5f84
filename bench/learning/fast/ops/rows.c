/* Sums of weighted rows, alone or with a ReLU before or behind them; `building.py` builds this, `fused.py` calls it.

Every sum adds one product after the other with fused multiply-adds, as torch's `embedding_bag` does, so both give the
same bits. Zeros and numbers that are not finite pass as they do there. */

#include <stdint.h>
#include <string.h>

/* AVX2 without <immintrin.h>, which takes the compiler three times as long as all of this. */
enum { LANES = 8 };
typedef float Vector __attribute__((vector_size(32)));
typedef int32_t Bits __attribute__((vector_size(32)));
typedef float Unaligned __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t UnalignedBits __attribute__((vector_size(32), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
INLINE Vector load(const float *from) { return *(const Unaligned *)from; }
INLINE void store(float *to, Vector v) { *(Unaligned *)to = v; }
INLINE Vector all(float x) { return (Vector){x, x, x, x, x, x, x, x}; }
INLINE Vector relu_of(Vector v) { return (Vector)((Bits)v & ~(Bits)(v < 0)); } /* a NaN stays one */
INLINE Vector fused(Vector a, Vector b, Vector sum) { return __builtin_ia32_vfmaddps256(a, b, sum); }

typedef struct Sums {
    int64_t rows, width;
    const int32_t *index, *offsets; /* row i adds up values[e] * table[index[e]], offsets[i] <= e < offsets[i + 1] */
    const float *values, *table;
    int64_t table_stride;
    float *out;
    int64_t out_stride;
    const struct Sums *first; /* if any: sums to be made before, rows of this one's table */
} Sums;

typedef struct {
    Sums sums;       /* `out_stride` may be less than `width`: the next row is then written over a row's end */
    int64_t used;    /* the columns from here on are expected to be 0 in every row */
    int32_t *seen;   /* `width` numbers of scratch: the bits of all that was seen in these columns */
    const float *bias;
    float *bias_row; /* where the table has it, if it is one of the rows that are added up */
} Forward;

typedef struct {
    Sums sums;                      /* over the gradient before the ReLU, which is written to its table */
    int64_t nodes;                  /* rows of the gradient */
    const float *gradient, *output; /* of the ReLU */
    int64_t gradient_stride, output_stride;
    float *last;                    /* if any: where the last of the sums goes, too, as the gradient of the bias */
} Backward;

/* Columns j to j + vectors * LANES of the row that adds up the entries from `start` to `end`. */
INLINE void part(const Sums *s, int64_t start, int64_t end, int64_t j, float *out, int vectors, const Forward *relu) {
    Vector sum[8];
#pragma GCC unroll 8
    for (int n = 0; n < vectors; n++)
        sum[n] = all(0);
    for (int64_t e = start; e < end; e++) {
        const float *row = s->table + s->index[e] * s->table_stride + j;
        const Vector value = all(s->values[e]);
#pragma GCC unroll 8
        for (int n = 0; n < vectors; n++)
            sum[n] = fused(value, load(row + n * LANES), sum[n]);
    }
#pragma GCC unroll 8
    for (int n = 0; n < vectors; n++) {
        if (relu)
            sum[n] = relu_of(relu->bias_row ? sum[n] : sum[n] + load(relu->bias + j + n * LANES));
        if (relu && j + (n + 1) * LANES > relu->used)
            *(UnalignedBits *)(relu->seen + j + n * LANES) |= (Bits)sum[n];
        store(out + j + n * LANES, sum[n]);
    }
}

INLINE void all_rows(const Sums s, const Forward *relu) {
    for (int64_t i = 0; i < s.rows; i++) {
        const int64_t start = s.offsets[i], end = s.offsets[i + 1];
        float *out = s.out + i * s.out_stride;
        int64_t j = 0;
        for (; j + 8 * LANES <= s.width; j += 8 * LANES)
            part(&s, start, end, j, out, 8, relu);
        const int64_t rest = (s.width - j) / LANES;
        switch (rest) { /* a constant keeps the sums in registers */
        case 7: part(&s, start, end, j, out, 7, relu); break;
        case 6: part(&s, start, end, j, out, 6, relu); break;
        case 5: part(&s, start, end, j, out, 5, relu); break;
        case 4: part(&s, start, end, j, out, 4, relu); break;
        case 3: part(&s, start, end, j, out, 3, relu); break;
        case 2: part(&s, start, end, j, out, 2, relu); break;
        case 1: part(&s, start, end, j, out, 1, relu); break;
        }
        for (j += rest * LANES; j < s.width; j++) {
            float sum = 0;
            for (int64_t e = start; e < end; e++)
                sum = __builtin_fmaf(s.values[e], s.table[s.index[e] * s.table_stride + j], sum);
            if (relu) {
                sum = relu->bias_row ? sum : sum + relu->bias[j];
                sum = sum < 0 ? 0 : sum;
                relu->seen[j] |= sum != 0;
            }
            out[j] = sum;
        }
    }
}

static void row_sums(const Sums *s) {
    if (s->first)
        row_sums(s->first);
    all_rows(*s, 0);
}

/* Whether a column that was expected to be 0 is not, but for the sign of a zero. */
static int came_back(const Forward *f) {
    for (int64_t j = f->used; j < f->sums.width; j++)
        if (f->seen[j] & INT32_MAX)
            return 1;
    return 0;
}

/* ReLU(sums); the result is of no use if a column came back. */
int relu_of_row_sums(const Forward *given) {
    const Forward f = *given; /* nothing that is written can change it */
    if (f.bias_row)
        memcpy(f.bias_row, f.bias, f.sums.width * sizeof(float));
    memset(f.seen, 0, f.sums.width * sizeof(int32_t));
    if (f.sums.first)
        row_sums(f.sums.first);
    all_rows(f.sums, &f);
    return came_back(&f);
}

/* ReLU(table), row by row; nothing is added up. */
int relu_of_rows(const Forward *given) {
    const Forward f = *given;
    memset(f.seen, 0, f.sums.width * sizeof(int32_t));
    for (int64_t i = 0; i < f.sums.rows; i++) {
        const float *row = f.sums.table + i * f.sums.table_stride;
        float *restrict out = f.sums.out + i * f.sums.out_stride;
        int32_t *restrict seen = f.seen;
        for (int64_t j = 0; j < f.sums.width; j++) {
            const float value = row[j] < 0 ? 0 : row[j];
            out[j] = value;
            seen[j] |= value != 0;
        }
    }
    return came_back(&f);
}

/* Sums over the gradient before a ReLU. */
void row_sums_through_relu(const Backward *b) {
    const int64_t width = b->sums.width;
    const float *gradient = b->gradient, *output = b->output;
    float *before = (float *)b->sums.table;
    for (int64_t i = 0; i < b->nodes; i++) {
        for (int64_t j = 0; j < width; j++)
            before[j] = output[j] <= 0 ? 0 : gradient[j];
        before += b->sums.table_stride;
        gradient += b->gradient_stride;
        output += b->output_stride;
    }
    row_sums(&b->sums);
    if (b->last)
        memcpy(b->last, b->sums.out + (b->sums.rows - 1) * b->sums.out_stride, width * sizeof(float));
}
