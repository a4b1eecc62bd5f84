/* Sums of weighted rows, alone or with a ReLU behind them; `compiled.py` builds and calls this.

Every sum adds one product after the other with fused multiply-adds, as torch's `embedding_bag` does, so both give the
same bits. Zeros and numbers that are not finite pass as they do there. */

#include <immintrin.h>
#include <stdint.h>

enum { LANES = 8 };

typedef struct Sums {
    const struct Sums *first; /* sums to be made before, if any: rows of this one's table */
    int64_t rows, width;
    const int32_t *index, *offsets; /* row i adds up values[e] * table[index[e]], offsets[i] <= e < offsets[i + 1] */
    const float *values, *table;
    int64_t table_stride;
    float *out;
    int64_t out_stride; /* with a ReLU it may be less than `width`: a row then ends where the next one begins */
    int64_t used;       /* with a ReLU: the columns from here on are expected to be 0 everywhere */
    int32_t *seen;      /* with a ReLU: `width` numbers of scratch */
} Sums;

void row_sums(const Sums *s);

/* `vectors` of them, from column j on, of the row that adds up the entries from `start` to `end`. */
#define INLINE static inline __attribute__((always_inline))
INLINE void block(const Sums *s, int32_t start, int32_t end, int64_t j, float *out, int vectors, int relu) {
    __m256 sum[8];
#pragma GCC unroll 8
    for (int n = 0; n < vectors; n++)
        sum[n] = _mm256_setzero_ps();
    for (int32_t e = start; e < end; e++) {
        const float *row = s->table + s->index[e] * s->table_stride + j;
        const __m256 value = _mm256_set1_ps(s->values[e]);
#pragma GCC unroll 8
        for (int n = 0; n < vectors; n++)
            sum[n] = _mm256_fmadd_ps(value, _mm256_loadu_ps(row + n * LANES), sum[n]);
    }
#pragma GCC unroll 8
    for (int n = 0; n < vectors; n++) {
        if (relu) {
            __m256i *seen = (__m256i *)(s->seen + j + n * LANES);
            sum[n] = _mm256_max_ps(_mm256_setzero_ps(), sum[n]); /* in this order a NaN stays one */
            _mm256_storeu_si256(seen, _mm256_or_si256(_mm256_loadu_si256(seen), _mm256_castps_si256(sum[n])));
        }
        _mm256_storeu_ps(out + j + n * LANES, sum[n]);
    }
}

INLINE void all_rows(const Sums *given, int relu) {
    const Sums s = *given; /* nothing that is written can change it */
    if (s.first)
        row_sums(s.first);
    for (int64_t i = 0; i < s.rows; i++) {
        const int32_t start = s.offsets[i], end = s.offsets[i + 1];
        float *out = s.out + i * s.out_stride;
        int64_t j = 0;
        for (; j + 8 * LANES <= s.width; j += 8 * LANES)
            block(&s, start, end, j, out, 8, relu);
        for (; j + 4 * LANES <= s.width; j += 4 * LANES)
            block(&s, start, end, j, out, 4, relu);
        for (; j + LANES <= s.width; j += LANES)
            block(&s, start, end, j, out, 1, relu);
        for (; j < s.width; j++) {
            float sum = 0;
            for (int32_t e = start; e < end; e++)
                sum = __builtin_fmaf(s.values[e], s.table[s.index[e] * s.table_stride + j], sum);
            if (relu) {
                sum = sum < 0 ? 0 : sum;
                s.seen[j] |= sum != 0;
            }
            out[j] = sum;
        }
    }
}

void row_sums(const Sums *s) { all_rows(s, 0); }

/* Whether a column that was expected to be 0 is not. */
static int came_back(const Sums *s) {
    for (int64_t j = s->used; j < s->width; j++)
        if (s->seen[j] & INT32_MAX) /* but for the sign of a zero */
            return 1;
    return 0;
}

static void forget(const Sums *s) {
    for (int64_t j = 0; j < s->width; j++)
        s->seen[j] = 0;
}

int relu_of_row_sums(const Sums *s) {
    forget(s);
    all_rows(s, 1);
    return came_back(s);
}

/* The rows of the table itself instead of sums. */
int relu_of_rows(const Sums *given) {
    const Sums s = *given;
    forget(&s);
    for (int64_t i = 0; i < s.rows; i++) {
        const float *row = s.table + i * s.table_stride;
        float *restrict out = s.out + i * s.out_stride;
        int32_t *restrict seen = s.seen;
        for (int64_t j = 0; j < s.width; j++) {
            const float value = row[j] < 0 ? 0 : row[j];
            out[j] = value;
            seen[j] |= value != 0;
        }
    }
    return came_back(&s);
}

typedef struct {
    Sums sums;        /* over the gradient before a ReLU, which is written to its table */
    int64_t nodes;    /* rows of the gradient */
    const float *gradient, *output; /* of the ReLU */
    int64_t gradient_stride, output_stride;
    float *last;      /* where the last of the sums goes: the gradient of the bias */
} Spread;

void row_sums_through_relu(const Spread *s) {
    const int64_t width = s->sums.width;
    const float *gradient = s->gradient, *output = s->output;
    float *masked = (float *)s->sums.table;
    for (int64_t i = 0; i < s->nodes; i++, masked += width) {
        for (int64_t j = 0; j < width; j++)
            masked[j] = output[j] <= 0 ? 0 : gradient[j];
        gradient += s->gradient_stride;
        output += s->output_stride;
    }
    row_sums(&s->sums);
    const float *row = s->sums.out + (s->sums.rows - 1) * s->sums.out_stride;
    for (int64_t j = 0; j < width; j++)
        s->last[j] = row[j];
}
