/* Counting quantized blocks, a vector of numbers at a time: included behind quantize_template.h, whose vectors it
 * uses, where entries_of_16 is defined too; afterwards there is bsmi_count_blocks.  Every square has the bits of
 * block.c: each of its steps is exact or rounds once, as there; and they are added in its order, one after the
 * other.  That chain of additions is what takes the time: a block's runs beside the squares of the next. */
typedef double doubles __attribute__((vector_size(4 * LANES)));
typedef int64_t long_words __attribute__((vector_size(4 * LANES)));
typedef float half_floats __attribute__((vector_size(2 * LANES)));

INLINE doubles load_wide(const float *from)
{
    half_floats v;
    memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, doubles);
}

INLINE doubles magnitude_wide(doubles v) { return (doubles)((long_words)v & INT64_MAX); }
INLINE doubles every_wide(double value) { return (doubles){ 0 } + value; }

/* Squares of a block's numbers, and of what they are off. */
struct squares {
    double signal[32], noise[32];
};

INLINE long_words square_block(const struct bsmi_quantized_row *row, const float *x, const float *values, int block,
                               bool divides, double scale_of_block, double most_of_block, struct squares *to)
{
    const doubles scale = every_wide(scale_of_block), most = every_wide(most_of_block),
                  t = every_wide(row->tensor_scale);
    long_words cut = { 0 };
    UNROLL for (int i = 0; i < block; i += LANES / 2)
    {
        const doubles number = load_wide(x + i), product = load_wide(values + i) * scale;
        const doubles error = number - (divides ? product / t : product * t), signal = number * number,
                      noise = error * error;
        memcpy(to->signal + i, &signal, sizeof signal);
        memcpy(to->noise + i, &noise, sizeof noise);
        cut -= (long_words)(magnitude_wide(number) * row->factor > most);
    }
    return cut;
}

INLINE void add_squares(const struct squares *squares, int block, double *signal, double *noise)
{
    UNROLL for (int i = 0; i < block; i++)
    {
        *signal += squares->signal[i];
        *noise += squares->noise[i];
    }
}

/* Of LANES blocks, or of what is left of them, a lane for each. */
INLINE words largest_of_blocks(const float *x, int block, int64_t blocks)
{
    words maxima[LANES];
    UNROLL for (int b = 0; b < LANES; b++) maxima[b] = b < blocks ? block_amax(x + b * block, block) : all(0);
    return block_maxima(maxima);
}

/* Largest numbers, and blocks that became zero; false, and nothing is counted, if some number is not finite. */
INLINE bool count_largest(const struct bsmi_quantized_row *row, const float *values, int block,
                          struct bsmi_row_counts *counts)
{
    words amax, flushed = all(0);
    memcpy(&amax, counts->amax_bits, sizeof amax);
    for (int64_t b = 0; b < row->blocks; b += LANES) {
        const words here = largest_of_blocks(row->x + b * block, block, row->blocks - b);
        const words back = largest_of_blocks(values + b * block, block, row->blocks - b);
        amax = larger(amax, here);
        flushed -= (here > 0) & (back == 0);
    }
    if (any(amax >= 0x7f800000)) return false;
    memcpy(counts->amax_bits, &amax, sizeof amax);
    for (int i = 0; any(flushed) && i < LANES; i++) counts->flushed += flushed[i];
    return true;
}

/* What the codes are worth. */
INLINE void look_up(const struct bsmi_quantized_row *row, int64_t count, float *values)
{
    if (row->bits == 4)
        for (int64_t i = 0; i < count; i += LANES) {
            const floats v = entries_of_16(row->elements, row->codes + i);
            memcpy(values + i, &v, sizeof v);
        }
    else
        for (int64_t i = 0; i < count; i++) values[i] = row->elements[row->codes[i]];
}

INLINE bool count_row(const struct bsmi_quantized_row *row, int block, bool divides, struct bsmi_row_counts *counts)
{
    float values[BSMI_COUNTED];
    double signal = counts->signal, noise = counts->noise;
    long_words cut = { 0 };
    look_up(row, row->blocks * block, values);
    if (!count_largest(row, values, block, counts)) return false;
    for (int64_t b = 0; b < row->blocks; b++) {
        struct squares squares;
        cut += square_block(row, row->x + b * block, values + b * block, block, divides, row->scales[b], row->most[b],
                            &squares);
        add_squares(&squares, block, &signal, &noise);
    }
    counts->signal = signal;
    counts->noise = noise;
    for (int i = 0; any((words)cut) && i < LANES / 2; i++) counts->saturated += cut[i];
    return true;
}

BSMI_TARGET bool BSMI_QUANTIZE(bsmi_count_blocks)(const struct bsmi_quantized_row *row, struct bsmi_row_counts *counts)
{
    if (row->block == 16) return row->divides ? count_row(row, 16, true, counts) : count_row(row, 16, false, counts);
    return row->divides ? count_row(row, 32, true, counts) : count_row(row, 32, false, counts);
}
