/* Made by make_golden.py with NumPy 2.4.6 and ml_dtypes 0.6.0. */
static const struct golden goldens[] = {
    { "float16 2x3", BSM_NPY_FP16, 2, { 2, 3 }, false, 1, 140,
      "\223NUMPY\001\000v\000{'descr': '<f2', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
    },
    { "float32 2x3", BSM_NPY_FP32, 2, { 2, 3 }, false, 1, 152,
      "\223NUMPY\001\000v\000{'descr': '<f4', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
      "W^elsz\201\210\217\226\235\244"
    },
    { "float64 2x3", BSM_NPY_FP64, 2, { 2, 3 }, false, 1, 176,
      "\223NUMPY\001\000v\000{'descr': '<f8', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
      "W^elsz\201\210\217\226\235\244\253\262\271\300\307\316\325\334\343\352\361\370\377\006\015\024"
      "\033\042)07>EL"
    },
    { "int8 2x3", BSM_NPY_INT8, 2, { 2, 3 }, false, 1, 134,
      "\223NUMPY\001\000v\000{'descr': '|i1', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&"
    },
    { "uint8 2x3", BSM_NPY_UINT8, 2, { 2, 3 }, false, 1, 134,
      "\223NUMPY\001\000v\000{'descr': '|u1', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&"
    },
    { "uint16 2x3", BSM_NPY_UINT16, 2, { 2, 3 }, false, 1, 140,
      "\223NUMPY\001\000v\000{'descr': '<u2', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
    },
    { "void8 2x3", BSM_NPY_BYTES, 2, { 2, 3 }, false, 1, 134,
      "\223NUMPY\001\000v\000{'descr': '|V1', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&"
    },
    { "void16 2x3", BSM_NPY_WORDS, 2, { 2, 3 }, false, 1, 140,
      "\223NUMPY\001\000v\000{'descr': '|V2', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
    },
    { "float4_e2m1fn 2x3", BSM_NPY_BYTES, 2, { 2, 3 }, false, 1, 134,
      "\223NUMPY\001\000v\000{'descr': '<V1', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&"
    },
    { "float6_e2m3fn 2x3", BSM_NPY_BYTES, 2, { 2, 3 }, false, 1, 134,
      "\223NUMPY\001\000v\000{'descr': '<V1', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&"
    },
    { "float6_e3m2fn 2x3", BSM_NPY_BYTES, 2, { 2, 3 }, false, 1, 134,
      "\223NUMPY\001\000v\000{'descr': '<V1', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&"
    },
    { "float8_e4m3fn 2x3", BSM_NPY_BYTES, 2, { 2, 3 }, false, 1, 134,
      "\223NUMPY\001\000v\000{'descr': '<V1', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&"
    },
    { "float8_e5m2 2x3", BSM_NPY_BYTES, 2, { 2, 3 }, false, 1, 134,
      "\223NUMPY\001\000v\000{'descr': '<f1', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&"
    },
    { "float8_e8m0fnu 2x3", BSM_NPY_BYTES, 2, { 2, 3 }, false, 1, 134,
      "\223NUMPY\001\000v\000{'descr': '<V1', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&"
    },
    { "bfloat16 2x3", BSM_NPY_WORDS, 2, { 2, 3 }, false, 1, 140,
      "\223NUMPY\001\000v\000{'descr': '<V2', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
    },
    { "float32 ", BSM_NPY_FP32, 0, { 0 }, false, 1, 132,
      "\223NUMPY\001\000v\000{'descr': '<f4', '"
      "fortran_order': False, 'shap"
      "e': (), }                   "
      "                            "
      "               \012\003\012\021\030"
    },
    { "float32 0", BSM_NPY_FP32, 1, { 0 }, false, 1, 128,
      "\223NUMPY\001\000v\000{'descr': '<f4', '"
      "fortran_order': False, 'shap"
      "e': (0,), }                 "
      "                            "
      "               \012"
    },
    { "float32 5", BSM_NPY_FP32, 1, { 5 }, false, 1, 148,
      "\223NUMPY\001\000v\000{'descr': '<f4', '"
      "fortran_order': False, 'shap"
      "e': (5,), }                 "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
      "W^elsz\201\210"
    },
    { "float32 2x3", BSM_NPY_FP32, 2, { 2, 3 }, false, 1, 152,
      "\223NUMPY\001\000v\000{'descr': '<f4', '"
      "fortran_order': False, 'shap"
      "e': (2, 3), }               "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
      "W^elsz\201\210\217\226\235\244"
    },
    { "float32 3x0x2", BSM_NPY_FP32, 3, { 3, 0, 2 }, false, 1, 128,
      "\223NUMPY\001\000v\000{'descr': '<f4', '"
      "fortran_order': False, 'shap"
      "e': (3, 0, 2), }            "
      "                            "
      "               \012"
    },
    { "float32 1x2x1x3", BSM_NPY_FP32, 4, { 1, 2, 1, 3 }, false, 1, 152,
      "\223NUMPY\001\000v\000{'descr': '<f4', '"
      "fortran_order': False, 'shap"
      "e': (1, 2, 1, 3), }         "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
      "W^elsz\201\210\217\226\235\244"
    },
    { "float32 1x1x1x1x1x1x1x2", BSM_NPY_FP32, 8, { 1, 1, 1, 1, 1, 1, 1, 2 }, false, 1, 136,
      "\223NUMPY\001\000v\000{'descr': '<f4', '"
      "fortran_order': False, 'shap"
      "e': (1, 1, 1, 1, 1, 1, 1, 2)"
      ", }                         "
      "               \012\003\012\021\030\037&-4"
    },
    { "float32 1234567x0", BSM_NPY_FP32, 2, { 1234567, 0 }, false, 1, 128,
      "\223NUMPY\001\000v\000{'descr': '<f4', '"
      "fortran_order': False, 'shap"
      "e': (1234567, 0), }         "
      "                            "
      "               \012"
    },
    { "fortran 2x3", BSM_NPY_FP16, 2, { 2, 3 }, true, 1, 140,
      "\223NUMPY\001\000v\000{'descr': '<f2', '"
      "fortran_order': True, 'shape"
      "': (2, 3), }                "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
    },
    { "fortran 3x1x2", BSM_NPY_FP16, 3, { 3, 1, 2 }, true, 1, 140,
      "\223NUMPY\001\000v\000{'descr': '<f2', '"
      "fortran_order': True, 'shape"
      "': (3, 1, 2), }             "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
    },
    { "version 2", BSM_NPY_FP64, 2, { 2, 2 }, false, 2, 160,
      "\223NUMPY\002\000t\000\000\000{'descr': '<f8',"
      " 'fortran_order': False, 'sh"
      "ape': (2, 2), }             "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
      "W^elsz\201\210\217\226\235\244\253\262\271\300\307\316\325\334"
    },
    { "version 3", BSM_NPY_FP64, 2, { 2, 2 }, false, 3, 160,
      "\223NUMPY\003\000t\000\000\000{'descr': '<f8',"
      " 'fortran_order': False, 'sh"
      "ape': (2, 2), }             "
      "                            "
      "               \012\003\012\021\030\037&-4;BIP"
      "W^elsz\201\210\217\226\235\244\253\262\271\300\307\316\325\334"
    },
};
